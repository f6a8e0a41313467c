"""Measuring speed; a benchmark reports, it never asserts."""
