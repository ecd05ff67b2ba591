"""TiRex, through tirex-ts."""

import io
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.adapters.base import Limits, PretrainedForecaster

_FILE = "model.ckpt"


class LicenceWarning(UserWarning):
    """The software about to be used is not free software."""


class TiRexForecaster(PretrainedForecaster):
    """NXAI's TiRex ("NX-AI/TiRex").

    Library and weights are under the NXAI Community License, which is not a free licence: companies with a yearly
    revenue above 100 million euros need a commercial licence to use it in a product or service, and distributors must
    display "Built with technology from NXAI". Creating a forecaster warns of this (`LicenceWarning`).

    It always computes on contexts of its full length (2048 steps for the published model), which is slow on a CPU.

    Needs the extra `tirex`. See `PretrainedForecaster` for the parameters.
    """

    name = "tirex"
    modules = ("torch", "tirex")
    extra = "tocsin[tirex]"
    package = "tirex.models.tirex"
    files = ((_FILE,),)

    def _load(self, library: ModuleType, folder: str | None) -> Any:
        with redirect_stdout(io.StringIO()):  # it prints where it loads from
            network = library.TiRexZero.from_pretrained(
                self.model if folder is None else str(Path(folder) / _FILE),
                backend="torch",
                device=str(self._device),
                hf_kwargs={"revision": self.revision},
            )
        return network.eval()

    def _limits(self) -> Limits:
        warnings.warn(
            "TiRex is under the NXAI Community License: large companies need a commercial licence to use it in a "
            "product or service, and distributors must display 'Built with technology from NXAI'",
            LicenceWarning,
            stacklevel=3,
        )
        config = self._network.config
        # Steps ahead push observations out of the network's view; further than this there would be none left.
        return Limits(config.train_ctx_len, config.train_ctx_len, tuple(config.quantiles))

    def _infer(self, contexts: NDArray[np.float32], horizon: int) -> Any:
        quantiles, _ = self._network.forecast(
            context=self._torch.from_numpy(contexts),
            prediction_length=horizon,
            output_type="torch",
            batch_size=len(contexts),
        )
        return quantiles
