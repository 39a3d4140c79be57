"""What a person reads of maps, models, runs and verifications: facts, and aligned lines."""
