"""The control loops: each watches one thing and does one duty. Duties that they share lie here."""
