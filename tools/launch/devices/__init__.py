"""The devices and cores of this host: whether they exist, who holds them, and which ranks get which cores."""
