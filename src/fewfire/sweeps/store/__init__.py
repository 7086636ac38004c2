"""Stores: what is kept of finished runs, where it is kept, and how it is counted, merged and exported."""
