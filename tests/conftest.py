"""Settings for all tests."""

from hypothesis import settings

# No deadline: the first call of a kernel may compile it. The same examples every time: a failure is the change's.
settings.register_profile("tocsin", deadline=None, derandomize=True)
settings.load_profile("tocsin")
