# Each target runs the script of the same name.
scripts = setup demo test bench torture kills powerloss faults durability fuzz races secrets interop sanitize lint model packaged commoncrypto apple docs documents examples recording compare install fleet-slurm hostile-fleet deploy image hostile
.PHONY: $(scripts) uninstall

# For `make install`: see Scripts/install.
export PREFIX DESTDIR

$(scripts):
	@Scripts/$@

uninstall:
	@Scripts/install --uninstall
