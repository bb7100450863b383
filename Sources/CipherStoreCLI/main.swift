print("cipherstore")
