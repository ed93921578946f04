"""What starts the processes of a distributed run, watches over them and ends them."""
