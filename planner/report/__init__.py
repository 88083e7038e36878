"""A finished study of a model on a chip, as a page that people read. Only this package reads templates; nothing in it writes files."""
