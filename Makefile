# Shorter names for the scripts, which are all that is needed.
.PHONY: setup demo test bench torture powerloss faults durability fuzz races secrets sanitize lint

setup demo test bench torture powerloss faults durability fuzz races secrets sanitize lint:
	@Scripts/$@
