"""The benchmark: detectors over folders of labelled files, tables and figures of the results."""

__version__ = "0.1.0"
