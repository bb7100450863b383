# Shorter names for the scripts, which are all that is needed.
.PHONY: setup demo test lint

setup demo test lint:
	@Scripts/$@
