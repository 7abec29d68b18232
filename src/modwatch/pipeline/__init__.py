"""The paths of a day of comments and of an audit, one function a step."""
