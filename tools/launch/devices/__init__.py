"""The devices and cores of this host: are they there, who has them, and which ranks get which cores."""
