"""Shares the black-box fixtures with the tests of this folder."""

from tests.support.black_box import own_broker

__all__ = ["own_broker"]
