"""A sick network's page, made once for all tests of it."""

import kernelprop as kp
from kernelprop.diagnosis.diagnose import diagnose
from kernelprop.report.page import page

LENGTH, DEPTH = 6, 4
NAME = 'mine <script>alert("x")</script> & {{data}}'


def diagnosis():
    model = kp.Transformer(kp.uniform(LENGTH, causal=True), DEPTH, mlp=kp.MLP("relu"), norm="post")
    kernel = kp.kernels.equicorrelated(LENGTH, 0.25)
    return diagnose(model, kernel, keep=range(DEPTH + 1)), kernel


def text():
    found, kernel = diagnosis()
    return page(NAME, found, kernel, "1.2.3"), found
