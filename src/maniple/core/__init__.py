"""Contracts that every other layer shares; numpy is the only heavy import."""
