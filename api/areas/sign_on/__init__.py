"""Pure rules about people: who they may be, how they prove it, what they may do. No input, no output."""
