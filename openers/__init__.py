"""Programs that open the sealed master key file by asking one of its holders. None of them ever sees what is sealed."""
