"""The benchmark: detectors over folders of labelled files, tables and figures of what they found."""
