"""Reports: numbers in words, tables and figures."""
