"""Small classifiers that Modwatch did not train, as folders of Hugging Face."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

VOCABULARY = {"[PAD]": 0, "[UNK]": 1, "you": 2, "fool": 3, "a": 4, "kind": 5, "word": 6}


def classifier(folder: Path, **config: Any) -> BertForSequenceClassification:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=7, intermediate_size=32, max_position_embeddings=64, **sizes, **config
        )
    ).eval()
    model.save_pretrained(folder)
    return model
