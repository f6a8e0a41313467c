"""Datasets in LeRobot's format, version 3.0: parquet tables, films and a folder of facts."""
