"""The state of detectors: saved, restored, changed, measured."""
