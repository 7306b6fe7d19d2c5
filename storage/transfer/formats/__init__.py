"""The log formats that can be read, one module or package each. `registry` lists them."""
