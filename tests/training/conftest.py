"""Collected is what the environment can run: training needs torch, the peers of an evaluation need statsforecast."""

from importlib.util import find_spec

collect_ignore = []
if not find_spec("torch"):
    collect_ignore += ["test_examples.py", "test_export.py", "test_faults.py", "test_signals.py", "test_train.py"]
if not find_spec("statsforecast"):
    collect_ignore += ["test_evaluate.py"]

if find_spec("torch"):
    import torch

    # The tests run side by side as it is.
    torch.set_num_threads(1)
