"""Training studies: does what is predicted at initialisation matter for the loss that is reached?"""
