"""Presets: one file each."""
