"""The site: every result on one page that needs no network."""
