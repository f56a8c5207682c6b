"""Pictures of every kind to arrays: names, reading and decoding, grey, colour."""

from ddlcn.images.decoding import AnyImage, ImageReadError
from ddlcn.images.grey import GreyImage, read_image, read_images
from ddlcn.images.naming import NamedImage, name_images

__all__ = ["AnyImage", "GreyImage", "ImageReadError", "NamedImage", "name_images", "read_image", "read_images"]
