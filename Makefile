# Shorter names for the scripts, which are all that is needed.
.PHONY: setup demo test bench torture lint

setup demo test bench torture lint:
	@Scripts/$@
