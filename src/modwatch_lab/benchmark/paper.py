"""What Kivlichan et al. (2021) published: set-up and figures of the benchmark CoToMoD.

Figures are transcribed from tables 2 and 3 (appendix D), which contain those of table 1. The paper
has its α-curves as figures without numbers.
"""

from collections.abc import Mapping

#: Titles of the two environments (section 4.2), and of methods and losses (section 5).
DOMAINS = {"in_domain": "In domain (test)", "out_of_domain": "Out of domain (deployment)"}
METHOD_TITLES = {
    "deterministic": "Deterministic",
    "sngp": "SNGP",
    "mc_dropout": "MC dropout",
    "ensemble": "Deep ensemble",
    "sngp_ensemble": "SNGP ensemble",
}
LOSS_TITLES = {"cross_entropy": "Cross-entropy", "focal": "Focal loss"}

#: Title and direction of each metric of the tables, in their order.
METRIC_TITLES = {
    "auroc": "AUROC ↑",
    "auprc": "AUPRC ↑",
    "accuracy": "Accuracy ↑",
    "ece": "ECE ↓",
    "brier": "Brier ↓",
    "calibration_auroc": "Calib. AUROC ↑",
    "calibration_auprc": "Calib. AUPRC ↑",
}

#: The table of each environment.
TABLES = {"in_domain": "table 2", "out_of_domain": "table 3"}

_PUBLISHED = {
    "in_domain": {
        "cross_entropy": {
            "deterministic": "0.9734 0.8019 0.9231 0.0245 0.0548 0.9230 0.4053",
            "sngp": "0.9741 0.8029 0.9233 0.0280 0.0548 0.9238 0.4063",
            "mc_dropout": "0.9729 0.8006 0.9274 0.0198 0.0508 0.9282 0.4020",
            "ensemble": "0.9738 0.8074 0.9231 0.0235 0.0544 0.9245 0.4045",
            "sngp_ensemble": "0.9741 0.8045 0.9226 0.0281 0.0549 0.9249 0.4158",
        },
        "focal": {
            "deterministic": "0.9730 0.8036 0.9476 0.1486 0.0628 0.9405 0.3804",
            "sngp": "0.9736 0.8076 0.9455 0.0076 0.0388 0.9385 0.3885",
            "mc_dropout": "0.9741 0.8076 0.9472 0.1442 0.0622 0.9425 0.3890",
            "ensemble": "0.9735 0.8077 0.9479 0.1536 0.0639 0.9418 0.3840",
            "sngp_ensemble": "0.9742 0.8122 0.9467 0.0075 0.0379 0.9400 0.3846",
        },
    },
    "out_of_domain": {
        "cross_entropy": {
            "deterministic": "0.7796 0.6689 0.9628 0.0128 0.0246 0.9412 0.3581",
            "sngp": "0.7695 0.6665 0.9640 0.0070 0.0253 0.9457 0.3660",
            "mc_dropout": "0.7806 0.6727 0.9671 0.0136 0.0241 0.9502 0.3707",
            "ensemble": "0.7849 0.6741 0.9625 0.0141 0.0242 0.9420 0.3484",
            "sngp_ensemble": "0.7749 0.6719 0.9633 0.0076 0.0248 0.9463 0.3655",
        },
        "focal": {
            "deterministic": "0.8013 0.6766 0.9795 0.1973 0.0377 0.9444 0.3018",
            "sngp": "0.8003 0.6820 0.9784 0.0182 0.0264 0.9465 0.3181",
            "mc_dropout": "0.8009 0.6790 0.9790 0.1896 0.0360 0.9481 0.3185",
            "ensemble": "0.8041 0.6814 0.9795 0.1998 0.0381 0.9461 0.3035",
            "sngp_ensemble": "0.8002 0.6827 0.9790 0.0176 0.0266 0.9481 0.3212",
        },
    },
}

#: Comments and toxic ones of Wikipedia Talk, training and test together (section 4.2).
WIKIPEDIA_TALK = (223_549, 21_384)

#: Model and strategy with the highest OC-AUROC (captions of figures 2 and 3).
BEST_OC_AUROC = {
    "in_domain": "SNGP ensemble (focal loss) by uncertainty, figure 2",
    "out_of_domain": "Deep ensemble (focal loss) by uncertainty, figure 3",
}


def published(domain: str, loss: str, method: str) -> Mapping[str, float]:
    """Return the published figures by metric.

    >>> published("in_domain", "focal", "sngp_ensemble")["auroc"]
    0.9742
    """
    figures = map(float, _PUBLISHED[domain][loss][method].split())
    return dict(zip(METRIC_TITLES, figures, strict=True))
