"""Pages that show what runs came to."""
