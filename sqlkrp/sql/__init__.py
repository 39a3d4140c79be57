"""Row programs to SQL text: pure functions, no connection."""
