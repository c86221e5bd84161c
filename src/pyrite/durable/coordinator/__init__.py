"""The coordinator as a program: it leads or stands by, decides on events and writes to the store."""
