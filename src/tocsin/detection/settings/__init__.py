"""The settings of detectors: how they are declared, checked and shown."""
