"""Measurements, as ratios and against published tables; nothing here is a test."""
