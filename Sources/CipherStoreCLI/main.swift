internal import CCipherSystem
internal import CipherPlatform

cs_protect_memory()
cs_open_standard_streams()
cs_fit_memory_to_limit()

exit(Tool.run(ThisProcess.commandLine))
