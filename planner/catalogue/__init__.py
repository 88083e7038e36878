"""Finds, strictly reads and writes descriptions of models and hardware: the only reader of data files."""

from planner.catalogue.folders import data_folder, names, restore_folders, use_folders
from planner.catalogue.lookup import all_hardware, all_models, load_engine, load_hardware, load_model, read_model
from planner.catalogue.reading import read_mapping, validate
from planner.catalogue.schema import DESCRIPTIONS, json_schema
from planner.catalogue.writing import model_yaml

__all__ = [
    "DESCRIPTIONS",
    "all_hardware",
    "all_models",
    "data_folder",
    "json_schema",
    "load_engine",
    "load_hardware",
    "load_model",
    "model_yaml",
    "names",
    "read_mapping",
    "read_model",
    "restore_folders",
    "use_folders",
    "validate",
]
