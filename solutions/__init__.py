"""Reference answers of the exercises, one file per chapter in each room.

They are the instructor's: a student's bundle holds their recorded outputs in their place.
"""
