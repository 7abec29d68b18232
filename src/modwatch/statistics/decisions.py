"""The model's decision, which every figure, report and queue takes alike."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def is_flagged(y_prob: ArrayLike, threshold: float) -> NDArray[np.bool_]:
    """Return whether probabilities (…) are above the threshold, both in [0, 1].

    Both are compared as float32, in which scores are stored: a score that equals the threshold is
    not flagged, whether it comes from a file, from the lake or from an array of another type.

    >>> is_flagged([0.8, 0.81], 0.8).tolist(), is_flagged(np.float32([0.8, 0.81]), 0.8).tolist()
    ([False, True], [False, True])
    """
    return np.asarray(np.asarray(y_prob, np.float32) > np.float32(threshold))


def decided_class(prob: NDArray[np.floating], threshold: float) -> NDArray[np.intp]:
    """Return the number (n,) of the class that is decided, by the probabilities (n, K) of K.

    Of two classes it is the second where that is flagged; of more it is the most probable.

    >>> decided_class(np.array([[0.4, 0.6], [0.7, 0.3]]), 0.7).tolist()
    [0, 0]
    """
    if prob.shape[1] > 2:
        return np.asarray(prob.argmax(axis=1))
    return is_flagged(prob[:, 1], threshold).astype(np.intp)
