"""The paths of a day of comments, of a model and of an audit, one function a step."""
