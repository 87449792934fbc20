"""This host: its addresses, NPUs, programs and Python interpreter."""
