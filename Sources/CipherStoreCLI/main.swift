internal import CCipherSystem

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

cs_protect_memory()
cs_open_standard_streams()
cs_fit_memory_to_limit()

exit(Tool.run(ThisProcess.commandLine))
