"""Parts that screens are made of. Messages go up, attributes come down."""
