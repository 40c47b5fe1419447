"""A session over the network: a page for the coordinator and one for each agent. Needs Starlette and uvicorn."""
