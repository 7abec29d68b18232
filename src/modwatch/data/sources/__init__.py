"""Sources of comments: files, databases, published corpora and the synthetic community."""
