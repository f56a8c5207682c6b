"""Why a model decided as it did, and what its atoms look like."""
