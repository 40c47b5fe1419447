"""Many runs on many machines: what to run (`spec`), one run (`runs`), workers (`pull`) and their `places`."""
