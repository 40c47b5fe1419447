"""One HTML file in which people play beside the agents of a team, without a server and without a network."""
