"""Running a sweep: what is missing, in batches that suit the engine, kept as each ends."""
