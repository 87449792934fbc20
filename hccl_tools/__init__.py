"""HCCL rank tables: build them, check them, and know what the hardware says.

Commands: ``hccl_tools.py`` (build) and ``validate_hccl.py`` (check).  The modules beside them are
what the commands and the launcher (``tools/launch/main.py``) share.
"""
