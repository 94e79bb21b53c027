"""A certificate belongs to one object that can't be changed."""

import gc

import numpy as np

from kernelprop import kernels, trust


def test_what_is_computed_from_a_certified_kernel_is_not_certified():
    kernel = trust.certify(np.eye(3))
    assert trust.is_certified(kernel)
    for other in (kernel.copy(), kernel[:2, :2], kernel - 2, np.asarray(kernel, np.float32), kernel.view()):
        assert not trust.is_certified(other)
    assert not trust.is_certified(np.eye(3))
    assert not trust.is_certified([[1.0]])
    assert not trust.is_certified(None)


def test_a_certified_kernel_cannot_be_written_to():
    kernel = kernels.identity(2)
    try:
        kernel[0, 0] = -1
    except ValueError:
        assert trust.is_certified(kernel)
    else:
        raise AssertionError("written to")
    kernel.flags.writeable = True
    assert not trust.is_certified(kernel)


def test_a_view_is_copied_since_its_base_could_change():
    base = np.eye(4)
    kernel = trust.certify(base[:2, :2])
    base[0, 0] = -1
    assert trust.is_certified(kernel)
    assert kernel[0, 0] == 1


def test_certificates_go_with_their_arrays():
    gc.collect()
    before = len(trust._CERTIFIED)
    kernel = kernels.identity(3)
    assert len(trust._CERTIFIED) == before + 1
    del kernel
    gc.collect()
    assert len(trust._CERTIFIED) == before
